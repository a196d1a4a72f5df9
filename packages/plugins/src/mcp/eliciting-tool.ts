/**
 * A tool whose server may ask a person in the middle of a call: its calls run a small graph, so that the question and the
 * answer are saved. A call that was asked about is made again with what is known; the server asks the same and is answered.
 */
import {
  defineGraph,
  defineState,
  type EffectClass,
  END,
  graphTool,
  isToolError,
  route,
  type Schema,
  START,
  type Tool,
  ToolError,
  type ToolOutput,
  toolSpec,
} from "@statewright/core";
import { type AnsweredQuestion, type McpAnswer, type McpQuestion, problemOf, readAnswer } from "./elicitation.ts";
import type { McpOutcome, McpRound } from "./mcp-session.ts";
import type { McpTool } from "./mcp-tools.ts";

/** Makes one call: to its end, or to the questions that it has. */
export type MakeAskingCall = (
  args: Readonly<Record<string, unknown>>,
  answered: readonly AnsweredQuestion[],
  round: McpRound | undefined,
  runtime: { readonly signal: AbortSignal; readonly progress: (text: string) => void },
) => Promise<McpOutcome>;

/** The key of a question: `tool.elicit` in the answers of the graph that calls the tool. */
const elicitKey = "elicit";

/** What is saved of a call: that it is to be made, how it ended, or what it waits for. */
type SavedCall =
  | { readonly kind: "open"; readonly round: McpRound | undefined }
  | McpOutcome
  | { readonly kind: "failed"; readonly error: SavedFailure; readonly round: McpRound | undefined };

type SavedFailure = Pick<ToolError, "kind" | "message" | "disposition"> & { readonly retryAfterMs?: number };

interface SavedState {
  readonly args: Readonly<Record<string, unknown>>;
  readonly call: SavedCall;
  readonly answered: readonly AnsweredQuestion[];
}

/** How often a person is asked again whose answer does not fit. */
const mostTries = 8;

/** The tool for a definition. What is said of its calls goes for those that are made anew with answers, too. */
export function askingTool(
  server: string,
  { definition, parts }: McpTool,
  make: MakeAskingCall,
  outputOf: (outcome: Extract<McpOutcome, { kind: "done" }>) => ToolOutput,
): Tool {
  const { name, description, input, effect = "once" } = parts;
  const tool = graphTool(graphOf(server, definition.name, effect, make), {
    name,
    description,
    input,
    given: (args) => ({ args }),
    answer: (state) => {
      const call = state.call as SavedCall;
      if (call.kind === "done") return outputOf(call);
      throw new ToolError("unknown_outcome", "A person has confirmed that this happened. Its result is not known.");
    },
  });
  return { ...tool, spec: toolSpec(parts) };
}

function graphOf(server: string, tool: string, effect: EffectClass, make: MakeAskingCall) {
  const state = defineState({
    args: plain(() => ({})),
    call: plain((): SavedCall => ({ kind: "open", round: undefined })),
    answered: plain((): readonly AnsweredQuestion[] => []),
  });
  /** Failures that this process has told. What was only saved may have been the last: it is told before anything is made again. */
  const told = new WeakSet<SavedCall>();
  return defineGraph({ name: `mcp_${server}`, state, interrupts: { [elicitKey]: answerSchema } })
    .nodes({
      call: {
        // The start of a call that may happen once is saved: one that a crash cut short is asked about, and not repeated.
        effect,
        run: async (saved, { signal, progress }) => {
          const { args, answered, call } = saved as SavedState;
          const round = call.kind === "open" ? call.round : undefined;
          try {
            return { call: await make(args, answered, round, { signal, progress }) };
          } catch (error) {
            if (signal.aborted || !isToolError(error)) throw error;
            return { call: { kind: "failed", error: savedFailure(error), round } satisfies SavedCall };
          }
        },
      },
      // It fails the attempt. Another one, where the tool has a retry, begins here and lets the call be made again.
      tell: (saved) => {
        const { call } = saved as SavedState;
        if (call.kind !== "failed") return {};
        if (told.has(call)) return { call: { kind: "open", round: call.round } satisfies SavedCall };
        told.add(call);
        const { kind, message, ...options } = call.error;
        throw new ToolError(kind, message, options);
      },
      ask: async (saved, { interrupt }) => {
        const { call, answered } = saved as SavedState;
        if (call.kind !== "asks") return {};
        const found: AnsweredQuestion[] = [];
        for (const question of call.questions) {
          const answer = await untilFit(question, async (payload) => {
            const given: unknown = await interrupt(elicitKey, { payload: { server, tool, ...payload } });
            return given as McpAnswer;
          });
          found.push({ key: question.key, answer });
        }
        return { answered: [...answered, ...found], call: { kind: "open", round: call.round } satisfies SavedCall };
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

function savedFailure({ kind, modelMessage: message, disposition, retryAfterMs }: ToolError): SavedFailure {
  return { kind, message, disposition, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** Ask, and ask again with what was wrong, until an answer fits the question. */
async function untilFit(
  question: McpQuestion,
  ask: (payload: {
    readonly message: string;
    readonly requestedSchema: McpQuestion["requestedSchema"];
  }) => Promise<McpAnswer>,
): Promise<McpAnswer> {
  const { message, requestedSchema } = question;
  let problem: string | undefined;
  for (let tries = 1; tries <= mostTries; tries++) {
    const again = problem === undefined ? {} : { problem, tries };
    const answer = await ask({ message, requestedSchema, ...again });
    problem = problemOf(answer, question);
    if (problem === undefined) return answer;
  }
  return { action: "cancel" };
}

const answerSchema: Schema<McpAnswer> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (given) => {
      const answer = readAnswer(given);
      return typeof answer === "string" ? { issues: [{ message: answer }] } : { value: answer };
    },
  },
};

/** A channel of plain data that only this file writes. */
function plain(first: () => unknown): Schema<unknown, unknown> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (given) => ({ value: given === undefined ? first() : given }),
    },
  };
}
