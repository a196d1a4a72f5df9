/** Middleware that logs a line per model call, per tool call, and for the end of the agent. */

import {
  defineMiddleware,
  isStatewrightError,
  listToolCalls,
  type Middleware,
  type MiddlewareRuntime,
  type ModelReply,
} from "@statewright/core";
import { checkFlag, checkFunction, checkOptions, escapeControlChars, listOptionNames } from "@statewright/core/adapter";

/** Destination and detail of the log. */
export interface LogCallsOptions {
  /** Receives each line, such as `console.log`. */
  readonly log: (line: string) => void;
  /**
   * Logs call arguments, truncated to 200 characters. The secrets of the run are redacted; other sensitive data is not.
   * Default false.
   */
  readonly args?: boolean;
}

/**
 * Logs the name, duration and outcome of each call; no texts, no results, and no arguments by default. Register
 * this middleware last, to log the final request and the raw reply.
 */
export function logCalls(options: LogCallsOptions): Middleware {
  checkOptions("logCalls", options, listOptionNames<LogCallsOptions>({ log: true, args: true }));
  const { log, args = false } = options;
  checkFunction("logCalls", { log: log ?? null });
  checkFlag("logCalls", { args });
  const writeLine = ({ run }: MiddlewareRuntime, text: string): void => void log(`${quoteName(run.thread)} ${text}`);
  return defineMiddleware({
    name: "logCalls",
    aroundModel: async (request, next, runtime) => {
      const { clock, model } = runtime;
      const startedAt = clock.now();
      const requestText = `model ${quoteName(model ?? "")}: ${request.messages.length} messages, ${request.tools.length} tools`;
      try {
        const reply = await next(request);
        writeLine(runtime, `${requestText}, ${describeReply(reply)}, ${Math.round(clock.now() - startedAt)} ms`);
        return reply;
      } catch (thrown) {
        writeLine(
          runtime,
          `${requestText}, failed: ${getErrorCode(thrown)}, ${Math.round(clock.now() - startedAt)} ms`,
        );
        throw thrown;
      }
    },
    afterTool: ({ call, result }, runtime) => {
      const argsText = args
        ? ` ${escapeControlChars(`${JSON.stringify(runtime.redact(call.args))?.slice(0, 200)}`)}`
        : "";
      const outcome = result.isError ? `failed: ${result.error?.kind ?? "error"}` : "ok";
      writeLine(runtime, `tool ${quoteName(call.name)}${argsText}, ${outcome}, ${Math.round(result.elapsedMs)} ms`);
      return undefined;
    },
    afterAgent: ({ ended }, runtime) => writeLine(runtime, `ended by ${quoteName(ended.by)}`),
  });
}

function describeReply(reply: ModelReply): string {
  const calls = listToolCalls({ ...reply, role: "assistant", id: "" }).map(({ name }) => quoteName(name));
  const { inputTokens = "?", outputTokens = "?" } = reply.usage ?? {};
  return `${calls.length === 0 ? quoteName(reply.finish) : `calls ${calls.join(", ")}`}, ${inputTokens} + ${outputTokens} tokens`;
}

function getErrorCode(thrown: unknown): string {
  if (isStatewrightError(thrown)) return thrown.code;
  return thrown instanceof Error ? quoteName(thrown.name) : typeof thrown;
}

/** Quotes unsafe names: models invent tool names, and a name with a line break could forge a log line. */
function quoteName(name: string): string {
  return /^[\w./:@-]{1,128}$/.test(name) ? name : escapeControlChars(JSON.stringify(name.slice(0, 128)));
}
