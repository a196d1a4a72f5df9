/** The output of a subgraph is written to a channel of another type. */
import { END, START, subgraph } from "statewright";
import { returns, shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'SubgraphBody<GraphTypesWithNodes<"returns", "check", never, never, GraphTypesWithoutNodes<TypesOfShape<{ readonly amount: ZodNumber; readonly note: ZodOptional<ZodString>; }>, ... 5 more ..., never>, {}, never>, { ...; }, { ...; }, unknown, { ...; }>' is not assignable to type '"the output of the subgraph: the channel notes takes another type"'.
    check: subgraph(returns, { input: () => ({ amount: 1 }), output: ({ amount }) => ({ notes: [amount] }) }),
  })
  .edges({ [START]: "check", check: END });
