"""Lessons on attention: what they compute (`lessons`) and their pictures (`gallery`)."""
