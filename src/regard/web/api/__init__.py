"""Handlers behind the routes: recordings, their maps and profiles, lessons."""
