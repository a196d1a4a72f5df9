/** A reducer returns a value of a wrong type. */
import { channel, defineState } from "statewright";
import * as z from "zod";

export const Till = defineState({
  // @ts-expect-error Argument of type '(sum: number, add: number) => string' is not assignable to parameter of type '(current: number, write: number) => number | undefined'.
  total: channel.reduce(z.number().default(0), (sum, add: number) => `${sum + add}`),
});
