"""SPEAKS JSON. Bytes to checked input, an outcome to a Reply of status, body and headers. Knows no Flask.

The definitions of members here are the one source of the checks, the OpenAPI document and the MCP schemas.
"""
