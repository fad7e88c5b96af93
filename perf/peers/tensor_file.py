"""Reads and writes safetensors files: named arrays with text metadata, with nothing but the standard library.

Layout: the header's length (8 bytes, little-endian), a JSON header, and the data, row-major and little-endian.
"""
import json
import struct

WIDTHS = {"F32": 4, "I32": 4}


def write(path, tensors, metadata):
    """`tensors` maps names to (dtype, shape, buffer); `metadata` texts to texts."""
    header, end = {"__metadata__": metadata}, 0
    for name, (dtype, shape, buffer) in tensors.items():
        begin, end = end, end + memoryview(buffer).nbytes
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, buffer in tensors.values():
            out.write(memoryview(buffer).cast("B"))


def read(path):
    """The metadata, and a dict of names to (dtype, shape, buffer)."""
    with open(path, "rb") as file:
        content = memoryview(file.read())
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(bytes(content[8:begin]))
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], content[begin + first:begin + last])
    return metadata, tensors
