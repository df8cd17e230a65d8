"""What a tool says to the model: text, images, files, JSON."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Image:
    """An image: base64 data and its media type, `image/png` say."""

    data: str
    media_type: str
    type: Literal["image"] = "image"


@dataclass(frozen=True, slots=True)
class File:
    """A file: base64 data, media type and the name to show."""

    data: str
    media_type: str
    name: str
    type: Literal["file"] = "file"


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value, shown to the model as its compact text."""

    json: JsonValue
    type: Literal["json"] = "json"


Content = Annotated[Text | Image | File | Json, Field(discriminator="type")]
