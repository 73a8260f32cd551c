// Package compose holds the tests of docker-compose.yml and the Dockerfile: that
// they are valid, that what they mount exists, and that the configuration they
// mount is one that walrelay takes. No container is started.
package compose
