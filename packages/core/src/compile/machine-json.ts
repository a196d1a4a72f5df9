/** A graph's machine as JSON: what XState's published schema of machines describes, in the form that `createMachine` reads back. */
import type { AnyStateMachine } from "xstate";
import { StatewrightError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Graph } from "./define-graph.ts";
import { drawingOf } from "./durable-machine.ts";

/**
 * The machine of a graph as JSON, with its actors and guards by name: valid under XState's schema of machines, and read back by
 * `createMachine`, given the guards in `graph.machine.implementations` and actors of one's own. Throws `invalid_option` for a
 * machine drawn by hand, whose functions JSON cannot hold.
 */
export function toMachineJson(graph: Graph): JsonObject {
  if (drawingOf(graph) !== undefined) {
    throw new StatewrightError("invalid_option", {
      what: `the machine "${graph.name}" was drawn by hand, and JSON cannot hold the functions in it`,
      next: "Keep what was given to createMachine as its source",
      place: { graph: graph.name },
    });
  }
  return machineJson(graph.machine);
}

/** The JSON of a machine all of whose actors and guards have names. */
export function machineJson(machine: AnyStateMachine): JsonObject {
  return stateJson(JSON.parse(JSON.stringify(machine.definition)) as Definition, machine.id);
}

/** A state as XState writes it. */
interface Definition {
  readonly id: string;
  readonly key: string;
  readonly type: string;
  readonly order: number;
  readonly initial?: JsonObject & { readonly target: readonly string[] };
  readonly states: Readonly<Record<string, Definition>>;
  readonly on: Readonly<Record<string, readonly (JsonObject & { readonly target: readonly string[] })[]>>;
  readonly invoke: readonly JsonObject[];
  readonly tags: readonly string[];
}

function stateJson(state: Definition, machine: string): JsonObject {
  const { id, key, type, order, initial, states, on, invoke, tags } = state;
  const inner = Object.entries(states);
  return {
    id,
    key,
    type,
    order,
    // XState looks for the first state by its key.
    ...(initial === undefined || type !== "compound"
      ? {}
      : { initial: { ...initial, target: initial.target.map((target) => keyOf(states, target)) } }),
    ...(inner.length === 0
      ? {}
      : { states: Object.fromEntries(inner.map(([name, each]) => [name, stateJson(each, machine)])) }),
    on: Object.fromEntries(
      Object.entries(on).map(([event, list]) => [
        event,
        list.map((transition) => ({
          ...transition,
          target: transition.target.map((target) => escaped(target, machine)),
        })),
      ]),
    ),
    ...(invoke.length === 0 ? {} : { invoke }),
    ...(tags.length === 0 ? {} : { tags }),
  };
}

function keyOf(states: Definition["states"], target: string): string {
  return Object.values(states).find(({ id }) => `#${id}` === target)?.key ?? target;
}

/** The id of a machine may have dots; without a mark XState would take what follows them for states. */
function escaped(target: string, machine: string): string {
  return `#${machine.replaceAll(".", "\\.")}${target.slice(`#${machine}`.length)}`;
}
