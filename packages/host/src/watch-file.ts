/** Watching a file by its folder, so that editors which write a new file and rename it are seen as those that write in place. */
import { type FSWatcher, realpathSync, watch } from "node:fs";
import { dirname, resolve } from "node:path";
import type { World } from "@statewright/core";
import { HostError, systemCodeOf } from "./host-error.ts";

/** What is done when something has happened, and where the time comes from. */
export interface WatchOptions {
  /** Something in the folder has changed: the file may be another one now, or the same. */
  readonly onChange: () => void;
  /** It cannot be watched any longer. */
  readonly onEnd: (error: HostError) => void;
  readonly world: Pick<World, "schedule">;
  /** Milliseconds from the first sign of a change to `onChange`: a change is often several. Default 50. */
  readonly pauseMs?: number;
}

/** Watch a file until the function that this gives is called. It does not keep the process alive. Throws `io`. */
export function watchFile(path: string, { onChange, onEnd, world, pauseMs = 50 }: WatchOptions): () => void {
  let cancel: (() => void) | undefined;
  let isOver = false;
  const watchers: FSWatcher[] = [];
  const end = (): void => {
    isOver = true;
    cancel?.();
    for (const watcher of watchers.splice(0)) watcher.close();
  };
  const fail = (error: unknown): void => {
    if (isOver) return;
    end();
    onEnd(unwatchable(path, error));
  };
  // Which name has changed is not always told, and a link may change by what it leads through: any change is a sign.
  const sign = (): void => {
    if (isOver || cancel !== undefined) return;
    cancel = world.schedule.after(pauseMs, () => {
      cancel = undefined;
      onChange();
    });
  };
  try {
    for (const folder of foldersOf(path)) {
      const watcher = watch(folder, { persistent: false }, sign);
      watchers.push(watcher);
      watcher.on("error", fail);
    }
  } catch (error) {
    end();
    throw unwatchable(path, error);
  }
  return end;
}

/** The folder of the file, and that of what it is a link to. */
function foldersOf(path: string): ReadonlySet<string> {
  const file = resolve(path);
  return new Set([dirname(file), dirname(realpathSync(file))]);
}

function unwatchable(path: string, error: unknown): HostError {
  const systemCode = systemCodeOf(error);
  const next =
    systemCode === "ENOSPC" || systemCode === "EMFILE"
      ? "Raise the limit of watches of the system, or load it without watching."
      : "See that it is there, or load it without watching.";
  return new HostError("io", `${path} cannot be watched (${systemCode || "no reason was given"}). ${next}`, {
    systemCode,
  });
}
