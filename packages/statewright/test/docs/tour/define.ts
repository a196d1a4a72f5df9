import {
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  END,
  edit,
  fanOut,
  type Graph,
  type GraphTypesOf,
  goto,
  inputNode,
  join,
  overwrite,
  route,
  START,
  send,
} from "statewright";
import * as z from "zod";

// state
const Article = defineState({
  topic: z.string(),
  outline: z.array(z.string()).default([]),
  parts: channel.record(z.string()),
  issues: channel.list(z.string()),
  round: channel.reduce(z.number().default(1), (sum, more: number) => sum + more),
  weak: channel.ephemeral(z.array(z.string())),
  published: z.boolean().default(false),
});

const Desk = defineContext({ editor: z.string(), headings: z.array(z.string()).default(["What", "Why", "How"]) });

export const article = defineGraph({
  name: "article",
  version: 1,
  state: Article,
  context: Desk,
  private: ["issues", "round", "weak"],
  input: z.object({ topic: z.string().trim().min(1) }),
  output: z.object({ topic: z.string(), parts: z.record(z.string(), z.string()) }),
  interrupts: {
    publish: { payload: z.object({ to: z.string(), parts: z.number() }), answer: z.enum(["yes", "again"]) },
  },
})
  .nodes({
    plan: (_state, { context }) => ({ outline: context.headings }),
    write: inputNode(z.string(), ({ topic, round }, { input }) => ({ parts: { [input]: `${topic}, draft ${round}` } })),
    spell: () => undefined,
    facts: ({ outline, round }) => (round === 1 ? { issues: outline.slice(-1) } : undefined),
    judge: ({ issues }) =>
      edit((draft) => {
        draft.weak = [...issues];
      }),
    revise: ({ weak = [] }) => [{ round: 1, issues: overwrite([]) }, ...weak.map((part) => send("write", part))],
    ask: async ({ parts }, { interrupt, context }) => {
      const payload = { to: context.editor, parts: Object.keys(parts).length };
      const answer = await interrupt("publish", { payload });
      return answer === "yes" ? goto("publish", { published: true }) : goto("plan", { round: 1 });
    },
    publish: () => undefined,
  })
  .edges({
    [START]: "plan",
    plan: fanOut("write", (state) => state.outline, { otherwise: END }),
    write: ["spell", "facts"],
    spell: join("judge"),
    facts: join("judge"),
    judge: route(["revise", "ask"], ({ issues }) => (issues.length > 0 ? "revise" : "ask")),
    revise: commandTargets("write"),
    ask: commandTargets("publish", "plan"),
    publish: END,
  });

interface ArticleTypes extends GraphTypesOf<typeof article> {}
export const namedArticle: Graph<ArticleTypes> = article;
