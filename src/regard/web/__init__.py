"""The lab and the viewer in the browser: a small server, the maps it shows, and the built page."""
