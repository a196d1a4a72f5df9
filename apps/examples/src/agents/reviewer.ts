/** A code reviewer on a real repository: it reads what changed, and what that touches, and may change nothing. */
import { runProcess } from "@statewright/host";
import { readonlyTools } from "@statewright/tools";
import { type AnyModel, clearToolResults, createAgent, defineTool, type Store, ToolError } from "statewright";
import * as z from "zod";

/** What a review comes to. */
const Review = z.object({
  verdict: z.enum(["approve", "request_changes"]),
  comments: z.array(
    z.object({
      file: z.string(),
      line: z.int().positive(),
      severity: z.enum(["bug", "risk", "style"]),
      text: z.string(),
    }),
  ),
});

/** What differs between a commit and what stands in the folder. */
const changedLines = (root: string) =>
  defineTool({
    name: "changed_lines",
    description: "What changed since a commit, as a diff.",
    input: z.object({
      since: z
        .string()
        .regex(/^[\w./~^-]+$/)
        .default("HEAD~1")
        .describe("A commit, a branch or a tag"),
    }),
    effect: "pure",
    safety: { access: "read", process: true, confirm: "never" },
    timeoutMs: 30_000,
    run: async ({ since }, { signal }) => {
      const args = [
        "-C",
        root,
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--end-of-options",
        since,
        "--",
      ];
      const { exitCode, stdout, stderr } = await runProcess("git", args, { signal });
      if (exitCode !== 0) throw ToolError.failed(stderr.trim());
      return stdout === "" ? "Nothing changed." : stdout;
    },
  });

/** Where the repository is, and where the review is kept. */
export interface ReviewPlace {
  readonly root: string;
  readonly store?: Store;
}

/** A reviewer of the repository in `root`. A long diff is kept as an artifact, and read page by page. */
export function reviewer(model: AnyModel, { root, store }: ReviewPlace) {
  return createAgent({
    name: "reviewer",
    model,
    instructions: "Review the change. Read the code around it before you say that something is wrong.",
    tools: [changedLines(root), ...readonlyTools({ root })],
    middleware: [clearToolResults({ triggerTokens: 60_000, keep: 6 })],
    maxTurns: 40,
    output: Review,
    ...(store && { store }),
  });
}
