/**
 * The machine of a graph, walked from every control state through cancels, crashes, failures, interrupts, timeouts and
 * resumes. Each part of the machine that the engine relies on is removed once, and the check must detect the removal.
 */
import { describe, expect, test } from "vitest";
import { type AnyStateMachine, createMachine } from "xstate";
import { checkGraph, END, type Graph, START } from "../../src/index.ts";
import { createRegionSteps, exploreMachine } from "../../src/inspect/check/explore-machine.ts";
import { getMachineKernel } from "../../src/run/kernel/get-kernel.ts";
import type { Kernel } from "../../src/run/kernel/kernel.ts";
import { type AnyGraph, createShape, either, some, withMachine } from "./defects.ts";

const sequential = createShape({ [START]: either("a", "b", END), a: either("a", "b", END), b: either("a", "b", END) });
const parallel = createShape({
  [START]: some("a", "b", "c", END),
  a: some("a", "b", END),
  b: some("a", "c", END),
  c: END,
});

/** Driver and regions agree about an idle run, so the engine needs only one of them. */
const unnoticedInParallel = /driver\.states\.(start|running|waiting)\.on|without its tag/;

type Config = { [key: string]: unknown };

/** A mutation of one place in a machine configuration, with its description. */
interface Break {
  readonly name: string;
  readonly apply: (config: Config) => void;
}

/** All places of a configuration with transitions, in every state. */
function listTransitions(
  config: Config,
  path: readonly string[] = [],
): readonly (readonly [string, readonly string[]])[] {
  const own = Object.entries((config["on"] ?? {}) as Config).flatMap(([event, list]) => {
    const at = [...path, "on", event];
    return Array.isArray(list) ? list.map((_, index): readonly string[] => [...at, `${index}`]) : [at];
  });
  const done =
    (config["invoke"] as Config | undefined)?.["onDone"] === undefined ? [] : [[...path, "invoke", "onDone"]];
  const inner = Object.entries((config["states"] ?? {}) as Config).flatMap(([name, state]) =>
    listTransitions(state as Config, [...path, "states", name]),
  );
  return [...[...own, ...done].map((at) => [at.join("."), at] as const), ...inner];
}

function holder(config: Config, path: readonly string[]): { readonly parent: Config; readonly key: string } {
  const parent = path.slice(0, -1).reduce<unknown>((at, key) => (at as Config)[key], config) as Config;
  return { parent, key: path.at(-1) ?? "" };
}

function removals(config: Config): readonly Break[] {
  return listTransitions(config).map(([name, path]) => ({
    name: `without ${name}`,
    apply: (changed) => {
      const { parent, key } = holder(changed, path);
      if (Array.isArray(parent)) parent.splice(Number(key), 1);
      else delete parent[key];
    },
  }));
}

/** Mutations that redirect transitions of leaf states. */
function detours(config: Config): readonly Break[] {
  return listTransitions(config).flatMap(([name, path]) => {
    const leaf = ["executing", "committing", "interrupted", "failed"].find((each) => path.includes(each));
    if (leaf === undefined || path.includes("driver") || !/run\.resumed|task\./.test(name)) return [];
    return ["committing", "executing"]
      .filter((target) => target !== (name.includes("run.resumed") ? "executing" : ""))
      .map(
        (target): Break => ({
          name: `${name} to ${target}`,
          apply: (changed) => {
            const { parent, key } = holder(changed, path);
            const before = parent[key];
            parent[key] = typeof before === "object" ? { ...before, target, reenter: true } : target;
          },
        }),
      );
  });
}

/** Mutations that take a transition for every event. */
function open(config: Config): readonly Break[] {
  return listTransitions(config).flatMap(([name, path]) => {
    const { parent, key } = holder(config, path);
    const before = parent[key];
    if (typeof before !== "object" || before === null || !("guard" in before)) return [];
    const apply: Break["apply"] = (changed) => {
      const place = holder(changed, path);
      const { guard: _, ...unguarded } = place.parent[place.key] as Config;
      place.parent[place.key] = unguarded;
    };
    return [{ name: `${name} without its guard`, apply }];
  });
}

/** Mutations that remove the tags of leaf states. */
function listTagRemovals(config: Config, path: readonly string[] = []): readonly Break[] {
  const own: readonly Break[] = Array.isArray(config["tags"])
    ? [
        {
          name: `${path.join(".")} without its tag`,
          apply: (changed) => {
            const { parent, key } = holder(changed, path);
            delete (parent[key] as Config)["tags"];
          },
        },
      ]
    : [];
  const inner = Object.entries((config["states"] ?? {}) as Config).flatMap(([name, state]) =>
    listTagRemovals(state as Config, [...path, "states", name]),
  );
  return [...own, ...inner];
}

function applyBreak(graph: AnyGraph, { apply }: Break): AnyGraph {
  const machine = graph.machine as AnyStateMachine;
  const config = structuredClone(machine.config) as Config;
  apply(config);
  const implementations = machine.implementations as Parameters<AnyStateMachine["provide"]>[0];
  return withMachine(graph, createMachine(config as never).provide(implementations));
}

/** Mutations of a graph's machine, without those that a run cannot observe. */
function listBreaks(graph: AnyGraph, unnoticed: RegExp): readonly Break[] {
  const config = structuredClone((graph.machine as AnyStateMachine).config) as Config;
  const all = [...removals(config), ...detours(config), ...open(config), ...listTagRemovals(config)];
  return all.filter(({ name }) => !unnoticed.test(name));
}

describe.each([
  // After all other transitions the remaining one leads to the end.
  ["one node at a time", sequential, /step\.commit\.2 without its guard/],
  ["parallel", parallel, unnoticedInParallel],
] as const)("machine of a graph: %s", (_name, graph, unnoticed) => {
  test("the compiled machine has no violation", () => {
    expect(checkGraph(graph).violations).toEqual([]);
  });

  test("any single defect of a compiled machine is reported as machine_mismatch [E57]", () => {
    const breaks = listBreaks(graph, unnoticed);
    expect(breaks.length).toBeGreaterThan(20);
    const missed = breaks.filter((each) => {
      const { violations } = checkGraph(applyBreak(graph, each));
      return !violations.some(({ rule }) => rule === "machine_mismatch");
    });
    expect(missed.map(({ name }) => name)).toEqual([]);
  });
});

test("any single defect in a region of a wide parallel machine is reported [E57]", () => {
  const stations = createRegionSteps(["a", "b", "c"]);
  const faults = (graph: AnyGraph) => exploreMachine(getMachineKernel(graph as Graph), stations);
  expect(faults(parallel)).toEqual([]);
  const missed = listBreaks(parallel, unnoticedInParallel).filter(
    (each) => faults(applyBreak(parallel, each)).length === 0,
  );
  expect(missed.map(({ name }) => name)).toEqual([]);
});

test("the number of events to walk the machine of a wide graph grows linearly with its nodes", () => {
  const eventsFor = (size: number): number => {
    const names = Array.from({ length: size }, (_, index) => `n${index}`);
    const graph = createShape({ [START]: names, ...Object.fromEntries(names.map((name) => [name, END])) });
    const kernel = getMachineKernel(graph as Graph);
    let events = 0;
    const counting: Kernel = {
      ...kernel,
      step: (snapshot, event) => {
        events += 1;
        return kernel.step(snapshot, event);
      },
    };
    expect(exploreMachine(counting, createRegionSteps(names))).toEqual([]);
    return events;
  };
  const [few, more] = [eventsFor(15), eventsFor(30)];
  expect(more).toBeLessThanOrEqual(2 * few);
});
