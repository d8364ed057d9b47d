"""Owns the files that fill a cluster (`momus serve --load`): read, checked and made into what is to be done. Pure.

Start at sources.py, which goes through the files. texts.py reads one in any of the three languages, and finds in which
line a field is; fields.py declares what a file may say; items.py makes values of it. What the items do to a cluster is
shell/load/.
"""
