"""All about atoms in pieces (over-segmentation): their prior, when they are believed in, and atoms that are none.

`prior` is part of the model; `rules` say when pieces are looked for and believed in; `artefacts` are atoms that several
sites made alike, of far pieces or of two atoms at once.

Internal: docs/public.md says what is not.
"""
