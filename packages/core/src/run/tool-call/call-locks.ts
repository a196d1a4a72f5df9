/**
 * The locks of one tool call. They are taken when nothing is left but to run the tool, so that no person is waited for
 * under a lock, and kept over the waits between its attempts: to others the call is one. They are given back when the last
 * attempt is over, also one that nobody waits for any more: a tool that was told to stop has settled then, or its grace has passed.
 */
import { describeThrown } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { takeLocks } from "../session/locks.ts";

/** The locks of a call at work. */
export interface CallLocks {
  /**
   * Hold what these arguments ask for, in place of what is held for others. False when the signal fired before. Throws a
   * tool error when the tool cannot say what it locks.
   */
  readonly fit: (args: unknown, signal: AbortSignal) => Promise<boolean>;
  /** Attempts begin; the returned function says that they are over. */
  readonly begun: () => () => void;
  /** Nobody asks for further attempts. */
  readonly release: () => void;
}

/** The locks of a call of this tool; nothing where it asks for none. */
export function locksOf({ name, execution }: ToolSpec, world: World): CallLocks | undefined {
  const { lock } = execution;
  if (lock === undefined) return undefined;
  let giveBack: (() => void) | undefined;
  let fitted: { readonly args: unknown } | undefined;
  let atWork = 0;
  let isOver = false;
  const free = (): void => {
    giveBack?.();
    giveBack = undefined;
    fitted = undefined;
  };
  return {
    begun: () => {
      atWork += 1;
      return () => {
        atWork -= 1;
        if (isOver && atWork === 0) free();
      };
    },
    release: () => {
      isOver = true;
      if (atWork === 0) free();
    },
    fit: async (args, signal) => {
      if (fitted?.args === args) return true;
      const names = await namesFor(name, lock, args);
      // Names are taken in their order: what is held is not kept while others are waited for.
      free();
      giveBack = await takeLocks(world, names, signal);
      if (giveBack === undefined) return false;
      fitted = { args };
      return true;
    },
  };
}

async function namesFor(
  tool: string,
  lock: NonNullable<ToolSpec["execution"]["lock"]>,
  args: unknown,
): Promise<readonly string[]> {
  const notRun = (why: string, cause?: unknown): ToolError =>
    ToolError.failed(`The tool "${tool}" was not run: ${why}.`, { cause });
  let names: unknown;
  try {
    names = await lock(args as never);
  } catch (cause) {
    throw notRun(`what it would lock is not known: ${describeThrown(cause)}`, cause);
  }
  if (Array.isArray(names) && names.every((name) => typeof name === "string")) return names;
  throw notRun(`its lock gave ${describeValue(names)}, which is no list of names`);
}
