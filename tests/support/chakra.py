"""Chakra's messages as far as traces use them, for tests: softnum ships no schema.

Names and numbers of fields are those of et_def.proto in schema/protobuf of github.com/mlcommons/chakra (0.0.4 to
1.0.0), without the kinds of values that no test has. Where SOFTNUM_CHAKRA_PROTO names the real one, that is used.
"""

import os
from pathlib import Path

import pytest

_REDUCED = """\
syntax = "proto3";
package ChakraProtoMsg;
message Words { repeated string values = 1; }
message Numbers { repeated int64 values = 1; }
message AttributeProto {
  string name = 1; string doc_string = 2;
  oneof value { double double_val = 3; int64 int64_val = 9; Numbers int64_list = 10; bool bool_val = 27;
                string string_val = 29; Words string_list = 30; }
}
message GlobalMetadata { string version = 1; repeated AttributeProto attr = 2; }
enum NodeType { INVALID_NODE = 0; METADATA_NODE = 1; MEM_LOAD_NODE = 2; MEM_STORE_NODE = 3; COMP_NODE = 4;
                COMM_SEND_NODE = 5; COMM_RECV_NODE = 6; COMM_COLL_NODE = 7; }
enum CollectiveCommType { ALL_REDUCE = 0; ALL_GATHER = 2; ALL_TO_ALL = 6; REDUCE_SCATTER = 7; }
message IOInfo { string values = 1; string shapes = 2; string types = 3; }
message Node {
  uint64 id = 1; string name = 2; NodeType type = 3; repeated uint64 ctrl_deps = 4; repeated uint64 data_deps = 5;
  uint64 start_time_micros = 6; uint64 duration_micros = 7; IOInfo inputs = 8; IOInfo outputs = 9;
  repeated AttributeProto attr = 10;
}
"""


def schema_file(folder: Path) -> Path:
    """Path of a schema; skips the test where protobuf or a compiler of schemas is missing."""
    pytest.importorskip("google.protobuf", reason="softnum[chakra] is not installed")
    pytest.importorskip("grpc_tools", reason="softnum[chakra] is not installed")
    if named := os.environ.get("SOFTNUM_CHAKRA_PROTO"):
        return Path(named)
    (folder / "et_def.proto").write_text(_REDUCED)
    return folder / "et_def.proto"
