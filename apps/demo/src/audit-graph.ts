/**
 * Audit of a source tree as a graph: a model surveys the tree with tools, parallel tasks check the packages, an
 * interrupt asks for approval, and the last node writes the report.
 *
 * ```
 * survey ⇄ tools
 *   └→ plan → check, check, … → judge → ask → write | decline
 * ```
 */
import {
  commandTargets,
  defineGraph,
  END,
  fanOut,
  getMessageText,
  goto,
  inputNode,
  listToolCalls,
  type Message,
  type Model,
  route,
  START,
  toolNode,
  toolRegistry,
} from "statewright";
import { Audit, AuditContext, type AuditState, interrupts, Part } from "./audit-state.ts";
import { checkPart, computeGrade, planParts } from "./checks.ts";
import { runLoggedEffect } from "./effects-log.ts";
import { guard, redact } from "./middleware.ts";
import { renderReport, writeReport } from "./report.ts";
import { tools } from "./tools.ts";

const instructions = `You survey a source tree for an audit. First call list_files. Then, in one message, call
count_lines, scan_todos, find_copies and git_history, and read_file for up to four files that say what the project is.
When you have their results, say in two or three sentences what this project is and what state it is in.`;

const modelTools = toolRegistry(tools).forModel();

/** Creates the audit graph with the given model. */
export function createAuditGraph(model: Model) {
  return defineGraph({ name: "audit", version: 1, state: Audit, context: AuditContext, interrupts })
    .nodes({
      survey: {
        retry: { attempts: 3 },
        run: async (state, { model: ask }) => ({
          messages: [await ask({ model, request: { instructions, messages: state.messages, tools: modelTools } })],
        }),
      },

      tools: toolNode({ tools, middleware: [guard, redact] }),

      plan: async (_state, { context, step, signal }) => ({
        ...(await step("parts", () => planParts(context.root, signal))),
      }),

      check: inputNode(Part, async (_state, { input: part, context, step, signal }) => {
        const runStep = <Value>(name: string, work: () => Promise<Value>) =>
          step(name, ({ idempotencyKey: key }) =>
            runLoggedEffect(context.log, { key, name: `${name} ${part.name}` }, work),
          );
        return { findings: await checkPart(context.root, part, runStep, signal) };
      }),

      judge: {
        retry: { attempts: 3 },
        run: async (state, { model: ask }) => {
          const request = {
            instructions: "Sum up the findings of an audit in two sentences.",
            messages: [createJudgeMessage(state)],
            tools: [],
          };
          return {
            verdict: {
              grade: computeGrade(state.parts, state.findings),
              summary: getMessageText(await ask({ model, request })),
            },
          };
        },
      },

      ask: async ({ verdict, findings }, { interrupt }) => {
        const payload = { grade: verdict?.grade ?? "", summary: verdict?.summary ?? "", findings: findings.length };
        const { ok, note } = await interrupt("write_report", { payload });
        return goto(ok ? "write" : "decline", { decision: { write: ok, note } });
      },

      write: async (state, { context, run, step }) => ({
        report: await step("write_report", ({ idempotencyKey: key }) =>
          runLoggedEffect(context.log, { key, name: "write_report" }, () =>
            writeReport(context.report, renderReport(state, run.branch)),
          ),
        ),
      }),

      decline: () => ({ report: null }),
    })
    .edges({
      [START]: "survey",
      survey: route(["tools", "plan"], (state) => (hasToolCalls(state.messages) ? "tools" : "plan")),
      tools: "survey",
      plan: fanOut("check", (state) => state.parts, { otherwise: "judge" }),
      check: "judge",
      judge: "ask",
      ask: commandTargets("write", "decline"),
      write: END,
      decline: END,
    });
}

export type AuditGraph = ReturnType<typeof createAuditGraph>;

function hasToolCalls(messages: readonly Message[]): boolean {
  const last = messages[messages.length - 1];
  return last?.role === "assistant" && listToolCalls(last).length > 0;
}

/** Builds the message for the judge: facts and findings only, no file contents. */
function createJudgeMessage({ facts, findings }: AuditState): Message {
  const lines = [
    ...Object.entries(facts).map(([name, fact]) => `${name}: ${fact}`),
    ...findings.map(({ severity, path, title }) => `- ${severity} ${path}: ${title}`),
  ];
  return { role: "user", id: "dossier", content: [{ type: "text", text: lines.join("\n") }] };
}
