/** Statewright JSON Schema: tool arguments by any JSON Schema, validated by ajv. */
export { isJsonObject } from "./is-json-object.ts";
export { isNestedDeeper } from "./is-nested-deeper.ts";
export { ajvValidator, jsonSchema } from "./json-schema.ts";
