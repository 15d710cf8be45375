"""Pages of the workbench: made on the server, read without JavaScript, live with it."""
