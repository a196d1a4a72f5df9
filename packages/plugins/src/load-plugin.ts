/** Plugin: a long-running program in any language that serves tool calls, one JSON object per line. */
import { isToolError, type Tool, ToolError, type ToolRuntime, type World } from "@statewright/core";
import { createSupervisor, type StartCheck, type Supervisor } from "@statewright/host";
import { createStartOptions, defaultMaxRestarts, type PluginOptions } from "./plugin-options.ts";
import { type PluginProcess, startPlugin } from "./plugin-process.ts";
import { notReady } from "./plugin-session.ts";
import { createTools, hashDescription, type NamedTool, type ToolCaller, toOutput } from "./plugin-tools.ts";
import type { PluginNotification } from "./protocol.ts";

/** Started plugin. */
export interface Plugin {
  /** Tools of the last description. */
  readonly tools: readonly (Tool & { readonly name: string })[];
  /** Process id of the active process, if any. */
  readonly pid: number | undefined;
  /** Stops the process and starts it again, with changed code and definitions. */
  restart(): Promise<void>;
  /** Requests a shutdown, then stops the process. */
  close(): Promise<void>;
}

/**
 * Starts a plugin, once for all calls. Throws `plugin_failed` if the plugin does not start or does not describe
 * itself, after stopping its process; `invalid_option` for an unset variable; `invalid_tool` for an invalid tool.
 */
export function loadPlugin(options: PluginOptions | string): Promise<Plugin> {
  return loadCheckedPlugin(options, undefined);
}

/** Starts a plugin with a trust check before each automatic restart. */
export async function loadCheckedPlugin(pluginOptions: PluginOptions | string, canStart: StartCheck): Promise<Plugin> {
  const options: PluginOptions = typeof pluginOptions === "string" ? { command: pluginOptions } : pluginOptions;
  const startOptions = createStartOptions(options);
  const { restart = "lazy", maxRestarts = defaultMaxRestarts, onTimeout = "wait" } = options;
  const { command, world } = startOptions;
  const first = await startPlugin(startOptions);
  let acceptedDigest = hashDescription(first);
  const supervisor: Supervisor<PluginProcess> = createSupervisor(first, {
    name: `plugin "${command}"`,
    verb: "started",
    restart,
    maxRestarts,
    canStart,
    startNext: async () => {
      const next = await startPlugin(startOptions);
      if (hashDescription(next) === acceptedDigest) return next;
      await next.stop();
      world.log("warn", `the tools of plugin "${command}" changed`, { command });
      throw createChangeError(command);
    },
  });
  const callTool = createToolCaller({ supervisor, command, onTimeout, world });

  /** Creates the tools, or stops the process if its tools are invalid. */
  async function createToolsOrStop(process: PluginProcess): Promise<readonly NamedTool[]> {
    try {
      return createTools(process, options, callTool);
    } catch (error) {
      await process.stop();
      throw error;
    }
  }

  let tools = await createToolsOrStop(first);
  return {
    get tools() {
      return tools;
    },
    get pid() {
      return supervisor.active?.pid;
    },
    restart: () =>
      supervisor.restart(async () => {
        const next = await startPlugin(startOptions);
        tools = await createToolsOrStop(next);
        acceptedDigest = hashDescription(next);
        return next;
      }),
    close: () => supervisor.close(),
  };
}

function createChangeError(command: string): ToolError {
  const fact = `The tools of plugin "${command}" changed since it was loaded`;
  return ToolError.failed(`${fact}. Restart the plugin to accept the change.`, {
    modelMessage: `${fact}. The call was not made.`,
  });
}

/** Creates the calls to a supervised plugin. A call that was not sent waits for the next process. */
function createToolCaller({
  supervisor,
  command,
  onTimeout,
  world,
}: {
  readonly supervisor: Supervisor<PluginProcess>;
  readonly command: string;
  readonly onTimeout: NonNullable<PluginOptions["onTimeout"]>;
  readonly world: World;
}): ToolCaller {
  return async ({ name: tool }, args, runtime) => {
    const { callId, signal } = runtime;
    const onNotification = (notification: PluginNotification): void => forwardNotification(notification, runtime);
    for (;;) {
      const process = await supervisor.ensureActive();
      try {
        const reply = await process.call({ callId, tool, args, signal, onNotification });
        supervisor.resetRestarts();
        return toOutput(reply);
      } catch (error) {
        if (error === notReady) {
          if (process.isAlive())
            world.log("warn", `plugin "${command}" owes a late reply and is restarted`, { callId });
          await process.stop();
          continue;
        }
        if (signal.aborted && isToolError(signal.reason) && signal.reason.kind === "timeout") {
          world.log("warn", `plugin "${command}" timed out`, { tool, callId });
          if (onTimeout === "kill") await process.stop();
        }
        throw error;
      }
    }
  };
}

function forwardNotification(notification: PluginNotification, { progress, update }: ToolRuntime): void {
  if (notification.kind === "progress") progress(notification.text);
  else {
    const { content, details } = notification;
    update?.({ content, ...(details === undefined ? {} : { details }) });
  }
}
