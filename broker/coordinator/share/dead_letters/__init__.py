"""Dead-letter queues of share groups (KIP-1191): where the records go that a group gives up.

    letter.py     what is written for each record, and how many fit into a batch: pure
    originals.py  key and value of the records that were given up, for groups that want copies
    addressee.py  which topic is the queue of a group, and whether it may be written to
    sending.py    one try to write letters, with its retries
    post.py       what is on its way, in which order the logs are written, and what a start resumes

The order, at any crash: ARCHIVING is durable in `__share_group_state` before the queue gets a record, the record before
ARCHIVED is written. So a record may come into the queue twice, and none is lost by a crash. Start reading at `post.py`.
"""
