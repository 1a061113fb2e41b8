"""The HTTP server: access guard, connection limits, worker threads, server-sent events, static page."""
