"""The loop's shell: turn runner, tools, router, worker."""
