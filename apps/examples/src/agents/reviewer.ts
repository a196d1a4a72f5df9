/** Code reviewer of a repository: reads the change and the related code, and has no write access. */
import { runProcess } from "@statewright/host";
import { readonlyTools } from "@statewright/tools";
import { type AnyModel, createAgent, defineTool, type Store, ToolError } from "statewright";
import { clearToolResults } from "statewright/middleware";
import * as z from "zod";

/** Result of a review. */
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

/** Defines a tool for the diff between a commit and the working tree. */
const defineChangedLines = (root: string) =>
  defineTool({
    name: "changed_lines",
    description: "Show the diff since a commit.",
    input: z.object({
      since: z
        .string()
        .regex(/^[\w./~^-]+$/)
        .default("HEAD~1")
        .describe("Commit, branch or tag"),
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

/** Repository folder, and store of the review. */
export interface ReviewOptions {
  readonly root: string;
  readonly store?: Store;
}

/**
 * Creates a reviewer of the repository in `root`. Stores a long diff as an artifact, which the model reads in pages.
 */
export function createReviewer(model: AnyModel, { root, store }: ReviewOptions) {
  return createAgent({
    name: "reviewer",
    model,
    instructions: "Review the change. Read the surrounding code before you report a problem.",
    tools: [defineChangedLines(root), ...readonlyTools({ root })],
    middleware: [clearToolResults({ triggerTokens: 60_000, keep: 6 })],
    maxTurns: 40,
    output: Review,
    ...(store && { store }),
  });
}
