/** One life of a durable machine: two processes with an engine each, until a crash of both. */
import { durableMachine, type Engine, engine, type Graph, type Store, type World } from "@statewright/core";
import type { Chance } from "@statewright/testing";
import type { Agenda } from "./agenda.ts";
import type { createMachineStores, LifeStores } from "./machine-stores.ts";
import { createPlannedMachine, getEffects, type MachinePlan, type ServiceInput } from "./random-machine.ts";

/** A process of a life. */
export interface LifeProcess {
  readonly engine: Engine;
  readonly graph: Graph;
}

/** Life of the processes of a machine. */
export interface Life {
  readonly owner: LifeProcess;
  readonly other: LifeProcess;
  /** Store for reading. */
  readonly store: Store;
  readonly isAlive: () => boolean;
  readonly crash: () => void;
  /** Resolves at the crash: work of the dead processes may never end. */
  readonly crashed: Promise<void>;
}

/** Parts that outlive a crash. */
export interface LifeParts {
  readonly agenda: Agenda;
  readonly plan: MachinePlan;
  readonly stores: ReturnType<typeof createMachineStores>;
  readonly chance: Chance;
  /** Body of every promise. */
  readonly call: (
    input: ServiceInput,
    signal: AbortSignal,
    life: { readonly isAlive: () => boolean },
  ) => Promise<string>;
  /** Called before each write: decides about a crash at this write. */
  readonly onWrite: (write: Parameters<Store["commit"]>[0]) => WriteDecision;
}

/** Decision about a write: crash before or after it, or hold its acknowledgement until it is released. */
export type WriteDecision =
  | { readonly kind: "pass" | "crash before" | "crash after" }
  | { readonly kind: "hold"; readonly onHeld: (release: () => void) => void };

/** Starts both processes. */
export function startLife({ agenda, plan, stores, chance, call, onWrite }: LifeParts): Life {
  let isAlive = true;
  const world = createWorld(agenda, chance, () => isAlive);
  const opened = stores.open(world);
  let reportCrash: (() => void) | undefined;
  const crashed = new Promise<void>((resolve) => {
    reportCrash = resolve;
  });
  const life: Pick<Life, "isAlive" | "crash" | "crashed"> = {
    crashed,
    isAlive: () => isAlive,
    crash: () => {
      if (!isAlive) return;
      isAlive = false;
      opened.crash();
      reportCrash?.();
    },
  };
  const createProcess = (inner: Store): LifeProcess => {
    const machine = createPlannedMachine(plan, (input, signal) => call(input, signal, life));
    const graph = durableMachine(machine, { version: 1, effects: getEffects(plan) as never }) as Graph;
    const store = watchWrites(inner, life, onWrite);
    return { graph, engine: engine({ store, graphs: [graph], world }) };
  };
  return { ...life, owner: createProcess(opened.owner), other: createProcess(opened.other), store: opened.other };
}

/** World whose timers are dropped at a crash. */
function createWorld(agenda: Agenda, chance: Chance, isAlive: () => boolean): World {
  const guard = (work: () => void) => (): void => {
    if (isAlive()) work();
  };
  return {
    clock: { now: () => agenda.now, monotonic: () => agenda.now },
    random: { next: () => chance.getInteger(2 ** 32) / 2 ** 32 },
    log: () => undefined,
    schedule: {
      after: (ms, work) => agenda.add(agenda.now + Math.max(0, ms), 1, guard(work)),
      at: (dueAt, work) => agenda.add(dueAt, 1, guard(work)),
      soon: (work) => agenda.soon(guard(work)),
    },
  };
}

/** Store whose commits may crash the life, or are acknowledged late. */
function watchWrites(
  inner: LifeStores["owner"],
  life: Pick<Life, "isAlive" | "crash">,
  onWrite: LifeParts["onWrite"],
): Store {
  const commit: Store["commit"] = (write, told) => {
    if (!life.isAlive()) return;
    const decision = onWrite(write);
    if (decision.kind === "crash before") {
      life.crash();
      return;
    }
    inner.commit(write, (...outcome) => {
      if (decision.kind === "crash after") life.crash();
      if (!life.isAlive()) return;
      if (decision.kind === "hold") decision.onHeld(() => (life.isAlive() ? told(...outcome) : undefined));
      else told(...outcome);
    });
  };
  return Object.assign(Object.create(inner) as Store, { commit });
}
