"""A response policy zone of blocked hosts, served to resolvers by AXFR, IXFR and NOTIFY, or written to a file."""
