# A static program, the authorities that it trusts, and nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=container
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /walrelay ./cmd/walrelay

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /walrelay /walrelay
ENV WALRELAY_CONFIG=/etc/walrelay/walrelay.yaml
# Nobody in particular, as a number, so that Kubernetes' runAsNonRoot can judge it.
USER 65532:65532
EXPOSE 8372
# There is no shell: each of these is the program itself.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/walrelay", "status"]
ENTRYPOINT ["/walrelay"]
CMD ["run"]
