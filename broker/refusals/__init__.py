"""Why a request was refused, in a sentence with the numbers that decided: for the log and the journal.

A refusal changes no state, so the sentence is made after it, from the request and the state that refused it
(`why.py`; `groups.py` and `transactions.py` for the two coordinators). Requests that are not refused do not come here,
and nothing is made unless the journal is on or the log shows `momus.refusals`. Imports coordinators and messages. Start
reading at `why.py`.
"""
