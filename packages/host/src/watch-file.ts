/** Watches a file through its folder, so that both a rename of a new file and a write in place are detected. */
import { type FSWatcher, realpathSync, watch } from "node:fs";
import { dirname, resolve } from "node:path";
import type { World } from "@statewright/core";
import { getSystemCode, HostError } from "./host-error.ts";

/** Callbacks and timers of a file watch. */
export interface WatchOptions {
  /** Called after a change in the folder; the file may be unchanged. */
  readonly onChange: () => void;
  /** Called when the file can no longer be watched. */
  readonly onEnd: (error: HostError) => void;
  /** Clock, random source and log. Default: the system world. */
  readonly world: Pick<World, "schedule">;
  /**
   * Milliseconds between the first file event and `onChange`, because a single change causes several events. Default:
   * 50.
   */
  readonly pauseMs?: number;
}

/** Watches a file until the returned function is called. Does not keep the process alive. Throws `io`. */
export function watchFile(path: string, { onChange, onEnd, world, pauseMs = 50 }: WatchOptions): () => void {
  let cancel: (() => void) | undefined;
  let isEnded = false;
  const watchers: FSWatcher[] = [];
  const end = (): void => {
    isEnded = true;
    cancel?.();
    for (const watcher of watchers.splice(0)) watcher.close();
  };
  const fail = (error: unknown): void => {
    if (isEnded) return;
    end();
    onEnd(createWatchError(path, error));
  };
  // The file name of an event is not always known, and a link can change through its target: every event of the
  // folder counts.
  const scheduleChange = (): void => {
    if (isEnded || cancel !== undefined) return;
    cancel = world.schedule.after(pauseMs, () => {
      cancel = undefined;
      onChange();
    });
  };
  try {
    for (const folder of listWatchedFolders(path)) {
      const watcher = watch(folder, { persistent: false }, scheduleChange);
      watchers.push(watcher);
      watcher.on("error", fail);
    }
  } catch (error) {
    end();
    throw createWatchError(path, error);
  }
  return end;
}

/** Returns the folder of the file and the folder of its link target. */
function listWatchedFolders(path: string): ReadonlySet<string> {
  const file = resolve(path);
  return new Set([dirname(file), dirname(realpathSync(file))]);
}

function createWatchError(path: string, error: unknown): HostError {
  const systemCode = getSystemCode(error);
  const fix =
    systemCode === "ENOSPC" || systemCode === "EMFILE"
      ? "Raise the watch limit of the system, or load the file without watching."
      : "Check that the file exists, or load it without watching.";
  return new HostError("io", `${path} cannot be watched (${systemCode || "no error code"}). ${fix}`, {
    systemCode,
  });
}
