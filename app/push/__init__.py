"""NUDGES. The row is the truth; a signal only says "look again".

Signals may merge or be lost. Whoever is woken reads the row and tells every change it has not told yet. Nothing
is queued for anybody.
"""
