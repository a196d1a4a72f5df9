/** A plugin that a configuration names for a while: when it does so no longer, its calls go on to their ends first. */
import type { Tool, ToolCall, ToolRuntime, World } from "@statewright/core";
import type { Plugin } from "./plugin.ts";
import { type MayStart, untrusted } from "./supervisor.ts";

/** A plugin, or another source of tools that can be ended and begun anew. */
export type ToolSource = Pick<Plugin, "tools" | "restart" | "close">;

/** A plugin whose calls are counted. */
export interface HeldPlugin<Source extends ToolSource = ToolSource> {
  readonly plugin: Source;
  /** Its tools, the same ones until it is restarted. */
  readonly tools: () => readonly Tool[];
  /**
   * End it once no call is at work. A call that comes later was offered before, by a request to a model that was under way:
   * the plugin is started for it once more, and ends again.
   */
  readonly retire: () => void;
  /** End it now. */
  readonly close: () => Promise<void>;
}

/**
 * Start a plugin and count its calls; `isOpen` tells whether it was started and not ended. With `mayStart` that is asked before
 * its program is started anew, after it has ended: the program may be another one by now.
 */
export async function heldPlugin<Source extends ToolSource>(
  start: (mayStart: MayStart) => Promise<Source>,
  isOpen: (plugin: Source) => boolean,
  { log }: Pick<World, "log">,
  mayStart: MayStart,
): Promise<HeldPlugin<Source>> {
  let calls = 0;
  let isRetired = false;
  let isClosed = false;
  let ending: Promise<void> | undefined;
  let starting: Promise<void> | undefined;
  const plugin = await start(mayStart === undefined ? undefined : async () => !isRetired && (await mayStart()));
  let made: { readonly from: readonly Tool[]; readonly tools: readonly Tool[] } | undefined;

  const endIfIdle = (): void => {
    if (!isRetired || isClosed || calls > 0 || !isOpen(plugin)) return;
    ending = plugin.close().then(
      () => undefined,
      (error: unknown) => log("warn", "a plugin that is no longer configured could not be ended", { error }),
    );
  };
  const started = async (): Promise<void> => {
    await ending;
    if (isClosed || isOpen(plugin)) return;
    if (mayStart !== undefined) throw untrusted();
    starting ??= plugin.restart().finally(() => {
      starting = undefined;
    });
    await starting;
  };
  const counted = (tool: Tool): Tool =>
    Object.freeze({
      ...tool,
      call: async (state: unknown, runtime: ToolRuntime, call: ToolCall) => {
        calls += 1;
        try {
          if (isRetired) await started();
          return await tool.call(state, runtime, call);
        } finally {
          calls -= 1;
          endIfIdle();
        }
      },
    });
  return {
    plugin,
    tools: () => {
      if (made?.from !== plugin.tools) made = { from: plugin.tools, tools: plugin.tools.map(counted) };
      return made.tools;
    },
    retire: () => {
      isRetired = true;
      endIfIdle();
    },
    close: async () => {
      isClosed = true;
      await plugin.close();
    },
  };
}
