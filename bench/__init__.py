"""MEASURES. Our server beside what else could be used, in one run, with the same load generator and durable settings.

Machines differ and are noisy, so what counts is the ratio within a round and its median over the rounds.
"""
