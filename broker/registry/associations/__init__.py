"""Associations of the registry: which subjects a resource, that is a topic, has its keys and values described by.

Owns: what is kept of one (`association.py`), all of them (`table.py`), what a request asks for (`given.py`), what it
      does (`changing.py`, `batch.py`, `reading.py`), and what an authorizer is asked of it (`touched.py`).
Behaviour: a WEAK association names a subject that others may share; a STRONG one, which is frozen, owns its subject:
           no schema refers to it, nothing else is associated with it, and it goes with the association.
Source: Confluent's AssociationsResource, AbstractSchemaRegistry.createOrUpdateAssociation (8.5).
"""
