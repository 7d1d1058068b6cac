#!/bin/sh
# One run as a job: to be started again whenever it ends with 75.
exec {{runnerd}} drive {{remote}} --run {{run}} --yes{{options}}
