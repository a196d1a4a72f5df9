/**
 * Named locks: no two tool calls of a process hold the same name at the same time, whatever their runs, threads and stores.
 * A name stands for something that all of them share, such as the real path of a file. What shares a schedule shares the
 * names: the whole process in the real world, a test of its own in a virtual one.
 */
import type { Schedule } from "../../base/time.ts";
import type { World } from "../../base/world.ts";
import { whenAborted } from "./abort.ts";

/** Who stands in line for a name, first to last; a name that is not there is free. */
type Lines = Map<string, (() => void)[]>;

const tables: WeakMap<Schedule, Lines> = new WeakMap();

function linesOf({ schedule }: World): Lines {
  let lines = tables.get(schedule);
  if (lines === undefined) {
    lines = new Map();
    tables.set(schedule, lines);
  }
  return lines;
}

/**
 * Take all of these names, one after the other in their order as text, so that no two calls wait for each other. Gives what
 * gives them back, or nothing when the signal fired before all were there.
 */
export async function takeLocks(
  world: World,
  names: readonly string[],
  signal: AbortSignal,
): Promise<(() => void) | undefined> {
  const lines = linesOf(world);
  const held: string[] = [];
  const giveBack = (): void => {
    for (const name of held.splice(0)) free(lines, name);
  };
  for (const name of [...new Set(names)].sort()) {
    if (!isTaken(lines, name)) held.push(name);
    else if (await comesToTurn(lines, name, signal)) held.push(name);
    else {
      giveBack();
      return undefined;
    }
  }
  return giveBack;
}

/** How many names are held in a world: none when no call is at work. */
export function locksHeld(world: World): number {
  return linesOf(world).size;
}

/** Take a name that is free; tells whether it is another's. */
function isTaken(lines: Lines, name: string): boolean {
  if (lines.has(name)) return true;
  lines.set(name, []);
  return false;
}

function comesToTurn(lines: Lines, name: string, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const line = lines.get(name) ?? [];
    const turn = (): void => {
      stopListening();
      resolve(true);
    };
    const stopListening = whenAborted(signal, () => {
      line.splice(line.indexOf(turn), 1);
      resolve(false);
    });
    line.push(turn);
  });
}

function free(lines: Lines, name: string): void {
  const next = lines.get(name)?.shift();
  if (next === undefined) lines.delete(name);
  else next();
}
