/**
 * Program instances, reused by one process after another: building a graph costs more than running it. Pending work of
 * a dead process never resolves, so that the next process is not affected.
 */
import type { ExternalWorld } from "./external-world.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { ProgramFactory, SimulatedProgram } from "./simulated-program.ts";

interface ProgramSlot {
  readonly program: SimulatedProgram;
  holder: SimulatedProcess | undefined;
  outside: ExternalWorld | undefined;
}

/** Slots that no simulation uses, by program. */
const freeSlotsByFactory: WeakMap<ProgramFactory, ProgramSlot[]> = new WeakMap();

/** Program instances of one simulation. */
export class ProgramSlots {
  readonly #factory: ProgramFactory;
  readonly #free: ProgramSlot[];
  readonly #used: ProgramSlot[] = [];

  constructor(factory: ProgramFactory) {
    this.#factory = factory;
    this.#free = freeSlotsByFactory.get(factory) ?? [];
    freeSlotsByFactory.set(factory, this.#free);
  }

  /** Returns a program instance; a process may run it at the same time. */
  getProgram(): SimulatedProgram {
    return (this.#used[0] ?? this.#acquire()).program;
  }

  /** Assigns a program instance without a living holder to a process. */
  assign(process: SimulatedProcess, outside: ExternalWorld): SimulatedProgram {
    const slot = this.#used.find(({ holder }) => !holder?.isAlive()) ?? this.#acquire();
    slot.holder = process;
    slot.outside = outside;
    return slot.program;
  }

  /** Kills all holders and returns the slots for the next simulation of the program. */
  release(): void {
    for (const { holder } of this.#used) holder?.kill();
    this.#free.push(...this.#used);
  }

  #acquire(): ProgramSlot {
    const slot = this.#free.pop() ?? createSlot(this.#factory);
    this.#used.push(slot);
    return slot;
  }
}

function createSlot(factory: ProgramFactory): ProgramSlot {
  let slot: ProgramSlot | undefined;
  const getExternalWorld = (): ExternalWorld => {
    if (slot?.outside === undefined)
      throw new Error(
        "simulate: expected external effects inside a process, got an effect while the program was created. Remove the effect from the factory.",
      );
    return slot.outside;
  };
  const program = factory({
    performEffect: (key, work, options) => getExternalWorld().performEffect(key, work, options),
    findEffect: (key) => getExternalWorld().findEffect(key),
  });
  slot = { program, holder: undefined, outside: undefined };
  return slot;
}
