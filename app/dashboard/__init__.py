"""SHOWS. The pages for people: the operator's, behind a sign-in, and the reviewer's, behind a link.

Every page is made on the server and works without its script; the script only keeps it fresh. `gate.py` says who is
there and what a form must prove, `show.py` how text that nobody trusts is put on a page, `templates/` and `static/`
hold the rest. No page decides anything: it asks a use case and shows the outcome.
"""
