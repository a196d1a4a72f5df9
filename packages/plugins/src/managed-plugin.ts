/** Managed plugin: a plugin removed from the configuration closes after its running tool calls. */
import type { Tool, ToolCall, ToolRuntime, World } from "@statewright/core";
import { createUntrustedError, type StartCheck } from "@statewright/host";
import type { Plugin } from "./load-plugin.ts";

/** Plugin or another restartable source of tools. */
export interface ToolSource extends Pick<Plugin, "restart" | "close"> {
  readonly tools: readonly Tool[];
}

/** Plugin with a count of its running tool calls. */
export interface ManagedPlugin<Source extends ToolSource = ToolSource> {
  readonly plugin: Source;
  /** Tools of the source, memoized until a restart. */
  readonly tools: () => readonly Tool[];
  /**
   * Closes the source after the last running tool call. A later tool call, advertised by an earlier model request,
   * restarts the source and closes it again.
   */
  readonly retire: () => void;
  /** Closes the source immediately. */
  readonly close: () => Promise<void>;
}

/**
 * Starts a source and counts its tool calls. `isOpen` returns true for a started and not closed source. `mayStart`
 * runs before each restart of a program, because the program file may have changed.
 */
export async function createManagedPlugin<Source extends ToolSource>(
  start: (mayStart: StartCheck) => Promise<Source>,
  isOpen: (plugin: Source) => boolean,
  { log }: Pick<World, "log">,
  mayStart: StartCheck,
): Promise<ManagedPlugin<Source>> {
  let runningCalls = 0;
  let isRetired = false;
  let isClosed = false;
  let closing: Promise<void> | undefined;
  let starting: Promise<void> | undefined;
  const plugin = await start(mayStart === undefined ? undefined : async () => !isRetired && (await mayStart()));
  let wrapped: { readonly source: readonly Tool[]; readonly tools: readonly Tool[] } | undefined;

  const closeIfIdle = (): void => {
    if (!isRetired || isClosed || runningCalls > 0 || !isOpen(plugin)) return;
    closing = plugin.close().then(
      () => undefined,
      (error: unknown) => log("warn", "could not close a plugin removed from the configuration", { error }),
    );
  };
  const ensureStarted = async (): Promise<void> => {
    await closing;
    if (isClosed || isOpen(plugin)) return;
    if (mayStart !== undefined) throw createUntrustedError();
    starting ??= plugin.restart().finally(() => {
      starting = undefined;
    });
    await starting;
  };
  const countCalls = (tool: Tool): Tool =>
    Object.freeze({
      ...tool,
      call: async (state: unknown, runtime: ToolRuntime, call: ToolCall) => {
        runningCalls += 1;
        try {
          if (isRetired) await ensureStarted();
          return await tool.call(state, runtime, call);
        } finally {
          runningCalls -= 1;
          closeIfIdle();
        }
      },
    });
  return {
    plugin,
    tools: () => {
      if (wrapped?.source !== plugin.tools) wrapped = { source: plugin.tools, tools: plugin.tools.map(countCalls) };
      return wrapped.tools;
    },
    retire: () => {
      isRetired = true;
      closeIfIdle();
    },
    close: async () => {
      isClosed = true;
      await plugin.close();
    },
  };
}
