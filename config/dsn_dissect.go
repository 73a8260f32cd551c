package config

import (
	"errors"
	"net/url"
	"strings"
)

// dissectDSN tells the parts of a connection string apart: what may be shown,
// and the secrets in it, as they stand and decoded. It is stricter than libpq:
// where an unescaped character makes it doubtful where a password ends, it
// refuses, so that nothing of it is taken for a host and printed. Its errors
// quote nothing.
func dissectDSN(raw string) (shown string, secrets []string, err error) {
	if strings.IndexByte(raw, 0) >= 0 {
		return "", nil, errors.New("holds a NUL byte")
	}
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, ok := strings.CutPrefix(raw, scheme); ok {
			shown, secrets, err = dissectURL(rest)
			return scheme + shown, secrets, err
		}
	}
	if head, _, ok := strings.Cut(raw, "://"); ok && !strings.ContainsAny(head, "= '") {
		return "", nil, errors.New("is a URL of another kind: want one that begins with postgres://")
	}
	return dissectKeywords(raw)
}

const encodeHint = "characters such as @ / : ? # % in a user name or password must be percent-encoded (@ is %40, / is %2F, % is %25)"

func dissectURL(rest string) (shown string, secrets []string, err error) {
	if strings.Contains(rest, "#") {
		return "", nil, errors.New("has a # in the URL: " + encodeHint)
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if strings.Contains(tail, "@") || strings.Count(authority, "@") > 1 {
		return "", nil, errors.New("has an @ too many in the URL: " + encodeHint)
	}
	hosts := authority
	var b strings.Builder
	if user, after, ok := strings.Cut(authority, "@"); ok {
		hosts = after
		name, password, has := strings.Cut(user, ":")
		b.WriteString(name)
		if has {
			plain, err := url.PathUnescape(password)
			if err != nil {
				return "", nil, errors.New("has a % in its password that begins no escape: " + encodeHint)
			}
			secrets = append(secrets, password, plain)
			b.WriteString(":" + masked)
		}
		if _, err := url.PathUnescape(name); err != nil {
			return "", secrets, errors.New("has a % in its user name that begins no escape: " + encodeHint)
		}
		b.WriteByte('@')
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if err := checkHost(host); err != nil {
			return "", secrets, err
		}
	}
	b.WriteString(hosts)
	path, query, hasQuery := strings.Cut(tail, "?")
	if _, err := url.PathUnescape(path); err != nil {
		return "", secrets, errors.New("has a % in its database name that begins no escape: " + encodeHint)
	}
	b.WriteString(path)
	if hasQuery {
		b.WriteByte('?')
	}
	for i, pair := range strings.Split(query, "&") {
		if pair == "" && (i == 0 || !hasQuery) {
			continue
		}
		rawKey, rawValue, ok := strings.Cut(pair, "=")
		key, err1 := url.PathUnescape(rawKey)
		value, err2 := url.PathUnescape(rawValue)
		if !ok || strings.Contains(rawValue, "=") || err1 != nil || err2 != nil {
			return "", secrets, errors.New("has a parameter after the ? that is not of the form key=value: " + encodeHint)
		}
		setting, secret := shownSetting(key, rawKey, rawValue, value)
		if secret != "" {
			secrets = append(secrets, secret, rawValue)
		}
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(setting)
	}
	return b.String(), secrets, nil
}

// checkHost refuses what is no host:port. The driver would take any text for a
// port until it connects; here it is a password that lost its @.
func checkHost(host string) error {
	port := ""
	if strings.HasPrefix(host, "[") {
		inner, after, ok := strings.Cut(host[1:], "]")
		if !ok || strings.Trim(inner, "0123456789abcdefABCDEF:.%") != "" || after != "" && after[0] != ':' {
			return errors.New("has a host in square brackets that is no IPv6 address")
		}
		port = strings.TrimPrefix(after, ":")
	} else {
		var name string
		name, port, _ = strings.Cut(host, ":")
		if strings.ContainsAny(name, " !\"$&'()*+;<=>[\\]^`{|}") {
			return errors.New("has a host name with a character that cannot be in one")
		}
		if _, err := url.PathUnescape(name); err != nil {
			return errors.New("has a % in a host name that begins no escape")
		}
	}
	if strings.Trim(port, "0123456789") != "" {
		return errors.New("has a port that is not a number; if it is a part of the password: " + encodeHint)
	}
	return nil
}

// dissectKeywords reads the form host=db password='it”s' as libpq does: blanks
// around = are allowed, a backslash escapes, quotes enclose a whole value.
func dissectKeywords(s string) (shown string, secrets []string, err error) {
	const blanks = " \t\n\r\v\f"
	var pairs []string
	for s = strings.TrimLeft(s, blanks); s != ""; s = strings.TrimLeft(s, blanks) {
		key, rest, ok := strings.Cut(s, "=")
		key = strings.TrimRight(key, blanks)
		if !ok || key == "" || strings.ContainsAny(key, blanks+`'"\`) {
			return "", nil, errors.New("is neither a URL nor of the form key=value key=value; a value with blanks needs single quotes")
		}
		value, raw, err := keywordValue(strings.TrimLeft(rest, blanks))
		if err != nil {
			return "", nil, err
		}
		s = strings.TrimLeft(rest, blanks)[len(raw):]
		setting, secret := shownSetting(key, key, raw, value)
		if secret != "" {
			secrets = append(secrets, secret, raw, strings.Trim(raw, "'"))
		}
		pairs = append(pairs, setting)
	}
	return strings.Join(pairs, " "), secrets, nil
}

// keywordValue takes a value off the front of s: unescaped, and as it stands.
func keywordValue(s string) (value, raw string, err error) {
	var b strings.Builder
	quoted := strings.HasPrefix(s, "'")
	i := 0
	if quoted {
		i = 1
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
		case quoted && c == '\'':
			return b.String(), s[:i+1], nil
		case !quoted && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			return b.String(), s[:i], nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", errors.New("has a single quote that is not closed")
	}
	return b.String(), s, nil
}
