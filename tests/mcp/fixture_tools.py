"""The tools that the protocol's conformance suite calls by name. They exist here only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.mcp.rpc import Fault
from app.mcp.tool import Asker

MISSING_CAPABILITY = -32021
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
_SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
_SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

Content = list[Mapping[str, object]]


@dataclass(frozen=True)
class FixtureTool:
    """A tool without a wire model."""

    name: str
    act: Callable[[Asker], Content]
    is_error: bool = False
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def listing(self) -> dict[str, Any]:
        """What the suite is shown."""
        return {
            "name": self.name,
            "description": f"{self.name}: for the conformance suite.",
            "inputSchema": self.schema,
        }

    def call(self, arguments: bytes, asker: Asker) -> Mapping[str, object]:
        """The content, whatever the arguments."""
        result: dict[str, object] = {"content": self.act(asker)}
        return {**result, "isError": True} if self.is_error else result


def _text(text: str) -> Mapping[str, object]:
    return {"type": "text", "text": text}


def _resource(uri: str, media: str, text: str) -> Mapping[str, object]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media, "text": text}}


_IMAGE = {"type": "image", "data": _PIXEL, "mimeType": "image/png"}
_AUDIO = {"type": "audio", "data": _SOUND, "mimeType": "audio/wav"}


def _needs_sampling(asker: Asker) -> Content:
    declared = asker.meta.get(_CAPABILITIES)
    if not isinstance(declared, dict) or "sampling" not in declared:
        needed: dict[str, object] = {"requiredCapabilities": {"sampling": {}}}
        raise Fault(MISSING_CAPABILITY, "This tool needs the client capability sampling", needed)
    return [_text("the capability is there")]


FIXTURES = [
    FixtureTool("test_simple_text", lambda _: [_text("This is a simple text response for testing.")]),
    FixtureTool("test_image_content", lambda _: [_IMAGE]),
    FixtureTool("test_audio_content", lambda _: [_AUDIO]),
    FixtureTool(
        "test_embedded_resource",
        lambda _: [_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    ),
    FixtureTool(
        "test_multiple_content_types",
        lambda _: [
            _text("Multiple content types test:"),
            _IMAGE,
            _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ],
    ),
    FixtureTool(
        "test_error_handling",
        lambda _: [_text("This tool intentionally returns an error for testing")],
        is_error=True,
    ),
    FixtureTool("json_schema_2020_12_tool", lambda _: [_text("ok")], schema=_SCHEMA_2020_12),
    FixtureTool("test_missing_capability", _needs_sampling),
    FixtureTool("test_logging_tool", lambda _: [_text("logged nothing")]),
    FixtureTool("test_streaming_elicitation", lambda _: [_text("asked nothing")]),
]
