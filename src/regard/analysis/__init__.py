"""Questions over a whole recording: what its heads do, which of them are alike, and how tokens reach each other."""

from regard.analysis._profiles import MEASURES, ProfileRow, ProfileTable, profiles

__all__ = ["profiles", "ProfileTable", "ProfileRow", "MEASURES"]
