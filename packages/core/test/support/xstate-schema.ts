/**
 * The XState schema of a JSON machine: each constraint of `packages/core/src/machine.schema.json` in statelyai/xstate
 * for XState 5, repeated here because no npm package ships that file.
 */
import { Ajv, type ValidateFunction } from "ajv";

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: "string" };
const listOf = (items: Schema): Schema => ({ type: "array", items });
const createMap = (values: Schema): Schema => ({ type: "object", additionalProperties: values });
const of = (name: string): Schema => ({ $ref: `#/$defs/${name}` });
const object = (properties: Schema, required: readonly string[] = []): Schema => ({
  type: "object",
  properties,
  required,
});

const action = object({ type: text }, ["type"]);
const way = { actions: listOf(action), source: text, target: listOf(text) };
const wayNeeds = ["actions", "eventType", "source", "target"];
const transition = object({ ...way, eventType: text, cond: { type: "object" } }, wayNeeds);
const first = object({ ...way, target: { ...listOf(text), minItems: 1 } }, wayNeeds);
const invoke: Schema = {
  ...object({ type: text, id: text, src: text }, ["type", "id", "src"]),
  additionalProperties: false,
};
const parts = {
  entry: listOf(action),
  exit: listOf(action),
  invoke: listOf(invoke),
  on: createMap(listOf(transition)),
};
const named = { id: text, key: text, order: { type: "integer" }, description: text };
const kind = (type: string, properties: Schema, required: readonly string[] = []): Schema =>
  object({ ...named, ...properties, type: { const: type } }, ["id", "key", "type", ...required]);

/** Matches exactly one of the five state kinds. */
const state: Schema = {
  oneOf: [
    kind("atomic", parts, ["on"]),
    kind("compound", { ...parts, initial: first, states: of("states") }, ["states"]),
    kind("parallel", { ...parts, states: of("states") }, ["states"]),
    kind("history", { history: { enum: ["shallow", "deep"] } }, ["history"]),
    kind("final", { data: { type: "object" } }),
  ],
};

const machine: Schema = {
  ...object(
    {
      ...named,
      ...parts,
      initial: first,
      type: { enum: ["compound", "parallel"] },
      context: { type: "object" },
      states: of("states"),
      transitions: listOf(transition),
      version: text,
    },
    ["id", "key", "type", "states"],
  ),
  $defs: { states: createMap(of("state")), state },
};

const validate: ValidateFunction = new Ajv({ strict: false, allErrors: true }).compile(machine);

/** Returns the schema errors of a JSON machine; empty when it is valid. */
export function listSchemaErrors(json: unknown): readonly string[] {
  validate(json);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
