/**
 * Serializes the machine of a graph to JSON: valid under XState's published machine schema, and readable by
 * `createMachine`.
 */

import type { AnyStateMachine } from "xstate";
import { invalidOption } from "../base/invalid-option.ts";
import type { JsonObject } from "../base/json.ts";
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { Graph } from "./graph.ts";
import { getProgramDefinition } from "./program.ts";

/**
 * Returns the machine of a graph as JSON, with actors and guards by name: valid under XState's machine schema.
 * `createMachine` accepts the JSON with the guards in `graph.machine.implementations` and your own actors. Throws
 * `invalid_option` for a user-written machine, because JSON cannot hold its functions.
 */
export function toMachineJson(graph: Graph): JsonObject {
  checkGraphOption("toMachineJson", graph);
  if (!getProgramDefinition(graph).isReadable) {
    throw invalidOption({
      where: "toMachineJson",
      expected: "a graph of defineGraph",
      found: `the user-written machine "${graph.name}", whose functions JSON cannot hold`,
      fix: "Use the argument of createMachine as its source",
      place: { graph: graph.name },
    });
  }
  return serializeMachine(graph.machine);
}

/** Returns the JSON of a machine whose actors and guards all have names. */
export function serializeMachine(machine: AnyStateMachine): JsonObject {
  return serializeState(JSON.parse(JSON.stringify(machine.definition)) as StateDefinition, machine.id);
}

/** A state in XState's definition format. */
interface StateDefinition {
  readonly id: string;
  readonly key: string;
  readonly type: string;
  readonly order: number;
  readonly initial?: JsonObject & { readonly target: readonly string[] };
  readonly states: Readonly<Record<string, StateDefinition>>;
  readonly on: Readonly<Record<string, readonly (JsonObject & { readonly target: readonly string[] })[]>>;
  readonly invoke: readonly JsonObject[];
  readonly tags: readonly string[];
}

function serializeState(state: StateDefinition, machine: string): JsonObject {
  const { id, key, type, order, initial, states, on, invoke, tags } = state;
  const inner = Object.entries(states);
  return {
    id,
    key,
    type,
    order,
    // XState finds the initial state by its key.
    ...(initial === undefined || type !== "compound"
      ? {}
      : { initial: { ...initial, target: initial.target.map((target) => findStateKey(states, target)) } }),
    ...(inner.length === 0
      ? {}
      : { states: Object.fromEntries(inner.map(([name, each]) => [name, serializeState(each, machine)])) }),
    on: Object.fromEntries(
      Object.entries(on).map(([event, list]) => [
        event,
        list.map((transition) => ({
          ...transition,
          target: transition.target.map((target) => escapeMachineId(target, machine)),
        })),
      ]),
    ),
    ...(invoke.length === 0 ? {} : { invoke }),
    ...(tags.length === 0 ? {} : { tags }),
  };
}

function findStateKey(states: StateDefinition["states"], target: string): string {
  return Object.values(states).find(({ id }) => `#${id}` === target)?.key ?? target;
}

/** Escapes dots in the machine id; XState would otherwise read the parts after a dot as states. */
function escapeMachineId(target: string, machine: string): string {
  return `#${machine.replaceAll(".", "\\.")}${target.slice(`#${machine}`.length)}`;
}
