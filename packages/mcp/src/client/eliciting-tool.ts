/**
 * Tool of a server that may elicit input from a person during a call. Its calls run a small graph, so that
 * elicitation and answer are stored. After an answer the call runs again; the server repeats the elicitation and
 * receives the stored answer.
 */
import {
  defineGraph,
  defineState,
  END,
  graphTool,
  isToolError,
  route,
  type Schema,
  START,
  type Tool,
  ToolError,
  type ToolOutput,
} from "@statewright/core";
import { toolSpec } from "@statewright/core/adapter";
import {
  type AnsweredElicitation,
  findAnswerProblem,
  type McpAnswer,
  type McpElicitation,
  parseAnswer,
} from "./elicitation.ts";
import type { McpOutcome, McpRound } from "./mcp-session.ts";
import type { McpTool } from "./mcp-tools.ts";

/** A call of an eliciting tool. */
export interface ElicitingCall {
  readonly args: Readonly<Record<string, unknown>>;
  readonly answers: readonly AnsweredElicitation[];
  readonly round: McpRound | undefined;
}

/** Parts of an eliciting tool. */
export interface ElicitingToolParts {
  /** Name of the server. */
  readonly server: string;
  readonly tool: McpTool;
  /** Runs a single call until its result or its elicitations. */
  readonly callServer: (
    call: ElicitingCall,
    runtime: { readonly signal: AbortSignal; readonly update?: ((partial: ToolOutput) => void) | undefined },
  ) => Promise<McpOutcome>;
  readonly toOutput: (outcome: Extract<McpOutcome, { kind: "done" }>) => ToolOutput;
}

/** Interrupt key: `tool.elicit` in the answers of the calling graph. */
const elicitKey = "elicit";

/** Stored state of a call: open, with a result, with elicitations, or failed. */
type SavedCall =
  | { readonly kind: "open"; readonly round: McpRound | undefined }
  | McpOutcome
  | { readonly kind: "failed"; readonly error: SavedFailure; readonly round: McpRound | undefined };

type SavedFailure = Pick<ToolError, "kind" | "message" | "disposition"> & { readonly retryAfterMs?: number };

interface SavedState {
  readonly args: Readonly<Record<string, unknown>>;
  readonly call: SavedCall;
  readonly answers: readonly AnsweredElicitation[];
}

/** Maximum number of attempts of a person to give a valid answer. */
const maxAttempts = 8;

/** Creates the tool of a definition. Its effect also applies to repeated calls with answers. */
export function createElicitingTool(elicitingParts: ElicitingToolParts): Tool & { readonly name: string } {
  const { toOutput, tool: mcpTool } = elicitingParts;
  const { parts } = mcpTool;
  const { name, description, input } = parts;
  const tool = graphTool(createCallGraph(elicitingParts), {
    name,
    description,
    input,
    toInput: (args) => ({ args }),
    toResult: (state) => {
      const call = state.call as SavedCall;
      if (call.kind === "done") return toOutput(call);
      throw new ToolError("unknown_outcome", "A person confirmed that the call happened. Its result is unknown.");
    },
  });
  return { ...tool, spec: toolSpec(parts) };
}

function createCallGraph({ server, tool: mcpTool, callServer }: ElicitingToolParts) {
  const { effect = "once" } = mcpTool.parts;
  const tool = mcpTool.definition.name;
  const state = defineState({
    args: createPlainChannel(() => ({})),
    call: createPlainChannel((): SavedCall => ({ kind: "open", round: undefined })),
    answers: createPlainChannel((): readonly AnsweredElicitation[] => []),
  });
  /**
   * Failures reported by this process. A failure loaded from a checkpoint may not be reported yet: it is reported
   * before a repeated call.
   */
  const reportedFailures = new WeakSet<SavedCall>();
  return defineGraph({ name: `mcp_${server}`, state, interrupts: { [elicitKey]: answerSchema } })
    .nodes({
      call: {
        // With the effect `once` the start of the call is stored: after a crash the call is in doubt and does not
        // repeat.
        effect,
        run: async (saved, { signal, update }) => {
          const { args, answers, call } = saved as SavedState;
          const round = call.kind === "open" ? call.round : undefined;
          try {
            return { call: await callServer({ args, answers, round }, { signal, update }) };
          } catch (error) {
            if (signal.aborted || !isToolError(error)) throw error;
            return { call: { kind: "failed", error: toSavedFailure(error), round } satisfies SavedCall };
          }
        },
      },
      // Fails the attempt. A retry of the tool starts at this node and then repeats the call.
      tell: (saved) => {
        const { call } = saved as SavedState;
        if (call.kind !== "failed") return {};
        if (reportedFailures.has(call)) return { call: { kind: "open", round: call.round } satisfies SavedCall };
        reportedFailures.add(call);
        const { kind, message, ...options } = call.error;
        throw new ToolError(kind, message, options);
      },
      ask: async (saved, { interrupt }) => {
        const { call, answers } = saved as SavedState;
        if (call.kind !== "asks") return {};
        const newAnswers: AnsweredElicitation[] = [];
        for (const elicitation of call.elicitations) {
          const answer = await askUntilValid(elicitation, async (payload) => {
            const input: unknown = await interrupt(elicitKey, { payload: { server, tool, ...payload } });
            return input as McpAnswer;
          });
          newAnswers.push({ key: elicitation.key, answer });
        }
        return { answers: [...answers, ...newAnswers], call: { kind: "open", round: call.round } satisfies SavedCall };
      },
    })
    .edges({
      [START]: "call",
      call: route(["ask", "tell", END], (saved) => {
        const { kind } = (saved as SavedState).call;
        if (kind === "asks") return "ask";
        return kind === "failed" ? "tell" : END;
      }),
      tell: "call",
      ask: "call",
    });
}

function toSavedFailure({ kind, modelMessage: message, disposition, retryAfterMs }: ToolError): SavedFailure {
  return { kind, message, disposition, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** Repeats the interrupt, with the problem of the last answer, until an answer is valid. */
async function askUntilValid(
  elicitation: McpElicitation,
  ask: (payload: {
    readonly message: string;
    readonly requestedSchema: McpElicitation["requestedSchema"];
  }) => Promise<McpAnswer>,
): Promise<McpAnswer> {
  const { message, requestedSchema } = elicitation;
  let problem: string | undefined;
  for (let tries = 1; tries <= maxAttempts; tries++) {
    const retryInfo = problem === undefined ? {} : { problem, tries };
    const answer = await ask({ message, requestedSchema, ...retryInfo });
    problem = findAnswerProblem(answer, elicitation);
    if (problem === undefined) return answer;
  }
  return { action: "cancel" };
}

const answerSchema: Schema<McpAnswer> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (input) => {
      const answer = parseAnswer(input);
      return typeof answer === "string" ? { issues: [{ message: answer }] } : { value: answer };
    },
  },
};

/** Channel of plain data, written by this file only. */
function createPlainChannel(createInitial: () => unknown): Schema<unknown, unknown> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => ({ value: value === undefined ? createInitial() : value }),
    },
  };
}
