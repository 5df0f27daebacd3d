module portico.dev/cudaclient

go 1.26
