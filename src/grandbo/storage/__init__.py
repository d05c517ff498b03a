"""Storage: the engine, the tenant's walls, the tables, the embedded server, the migrations' runner."""
