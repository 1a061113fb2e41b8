"""The checker that REGARD_TYPECHECK=1 puts around every annotated function; see conftest.py."""

from beartype import BeartypeConf, beartype

# As PEP 484 has it, an int is welcome where a float is asked for.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
