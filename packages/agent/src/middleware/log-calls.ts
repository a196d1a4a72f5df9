/** One line for each call of a model or a tool, and for the end of the agent. */
import {
  callsOf,
  checkOptions,
  defineMiddleware,
  isStatewrightError,
  type Middleware,
  type MiddlewareRuntime,
  type ModelReply,
  optionNames,
  printable,
} from "@statewright/core";
import { checkFlag, checkFunction } from "../agent/check-option.ts";

/** What `logCalls` takes. */
export interface LogCallsOptions {
  /** Gets each line, such as `console.log`. */
  readonly log: (line: string) => void;
  /** Show the arguments of calls, cut to 200 characters: they may hold what no log should. Default false. */
  readonly args?: boolean;
}

/**
 * Log what is called, how long it took and how it ended; no texts, no results, and no arguments unless asked for. Register it
 * last: then it sees what is sent and what comes back.
 */
export function logCalls(options: LogCallsOptions): Middleware {
  checkOptions("logCalls", options, optionNames<LogCallsOptions>({ log: true, args: true }));
  const { log, args = false } = options;
  checkFunction("logCalls", { log: log ?? null });
  checkFlag("logCalls", { args });
  const line = ({ run }: MiddlewareRuntime, text: string): void => void log(`${plain(run.thread)} ${text}`);
  return defineMiddleware({
    name: "logCalls",
    aroundModel: async (request, next, runtime) => {
      const { clock, model } = runtime;
      const began = clock.now();
      const asked = `model ${plain(model ?? "")}: ${request.messages.length} messages, ${request.tools.length} tools`;
      try {
        const reply = await next(request);
        line(runtime, `${asked}, ${said(reply)}, ${Math.round(clock.now() - began)} ms`);
        return reply;
      } catch (thrown) {
        line(runtime, `${asked}, failed: ${codeOf(thrown)}, ${Math.round(clock.now() - began)} ms`);
        throw thrown;
      }
    },
    afterTool: ({ call, result }, runtime) => {
      const shown = args ? ` ${printable(`${JSON.stringify(call.args)?.slice(0, 200)}`)}` : "";
      const end = result.isError ? `failed: ${result.error?.kind ?? "error"}` : "ok";
      line(runtime, `tool ${plain(call.name)}${shown}, ${end}, ${Math.round(result.elapsedMs)} ms`);
      return undefined;
    },
    afterAgent: ({ ended }, runtime) => line(runtime, `ended by ${plain(ended.by)}`),
  });
}

function said(reply: ModelReply): string {
  const calls = callsOf({ ...reply, role: "assistant", id: "" }).map(({ name }) => plain(name));
  const { inputTokens = "?", outputTokens = "?" } = reply.usage ?? {};
  return `${calls.length === 0 ? plain(reply.finish) : `calls ${calls.join(", ")}`}, ${inputTokens} + ${outputTokens} tokens`;
}

function codeOf(thrown: unknown): string {
  if (isStatewrightError(thrown)) return thrown.code;
  return thrown instanceof Error ? plain(thrown.name) : typeof thrown;
}

/** A name as one word of the line: models make names up, and a name could be a line of its own. */
function plain(name: string): string {
  return /^[\w./:@-]{1,128}$/.test(name) ? name : printable(JSON.stringify(name.slice(0, 128)));
}
