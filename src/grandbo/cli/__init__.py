"""The command line: it translates options into calls of the library, and answers into lines."""
