//! Schemas that the API document has under a name and that no type here describes: those of the core's types, which
//! cannot describe themselves because the verifier links them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

pub(crate) const PATH: &str = "/components/schemas";

macro_rules! named {
    ($($name:ident)+) => {
        $(pub(crate) struct $name;

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                Schema::new_ref(format!("#{PATH}/{}", stringify!($name)))
            }
        })+
    };
}

named! { ActorId Code CredentialId Digest Entry ItemId Role Time }

/// An object whose members the API does not know.
pub(crate) struct Object;

impl JsonSchema for Object {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}
