package schemas

import (
	"regexp"
	"slices"
	"strconv"
	"time"
	_ "time/tzdata" // zones are the same wherever this runs
)

const (
	shortestWindow = 30 * time.Minute
	longestWindow  = 6 * time.Hour
	longestPeriod  = 90 * 24 * time.Hour
)

// shootWindow checks the time window of maintenance.
func shootWindow(r *report, s shoot) {
	window := s.spec.at("maintenance", "timeWindow")
	if !window.at("begin").set() || !window.at("end").set() {
		return
	}
	begin, ok := timeOfDay(window.at("begin").text())
	end, okEnd := timeOfDay(window.at("end").text())
	if !ok || !okEnd {
		wrong := window.at("begin")
		if ok {
			wrong = window.at("end")
		}
		r.add(wrong.as(window.at("begin/end").path), TypeInvalid, "must be times of day such as 220000+0100 and 230000+0100")
		return
	}
	length := end - begin
	if length < 0 {
		length += 24 * time.Hour
	}
	if length > longestWindow || length < shortestWindow {
		r.add(window, TypeInvalid, "is %s long, but must be from %s to %s long", length, shortestWindow, longestWindow)
	}
}

var timeForm = regexp.MustCompile(`^([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])([+-])([01][0-9])([0-5][0-9])$`)

// timeOfDay returns the time since midnight UTC of a text such as 220000+0100.
func timeOfDay(text string) (time.Duration, bool) {
	parts := timeForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	number := func(i int) time.Duration {
		value, _ := strconv.Atoi(parts[i]) // the form has digits only
		return time.Duration(value)
	}
	clock := number(1)*time.Hour + number(2)*time.Minute + number(3)*time.Second
	offset := number(5)*time.Hour + number(6)*time.Minute
	if parts[4] == "+" {
		offset = -offset
	}
	const day = 24 * time.Hour
	return ((clock+offset)%day + day) % day, true
}

// shootRotation checks the periods of automatic credential rotation.
func shootRotation(r *report, s shoot) {
	credentials := s.spec.at("maintenance", "autoRotation", "credentials")
	for _, kind := range []string{"observability", "sshKeypair", "etcdEncryptionKey"} {
		if kind == "sshKeypair" && len(s.workers) == 0 {
			continue
		}
		period := credentials.at(kind, "rotationPeriod")
		if duration, ok := period.duration(); ok && duration != 0 && (duration < shortestWindow || duration > longestPeriod) {
			r.add(period, TypeInvalid, "%s is out of range: it must be 0, which turns rotation off, or between 30m and 2160h (90 days)", period.text())
		}
	}
}

// shootKeyRotation requires the rotation that AES-GCM needs: a key is unsafe after too many writes.
// A new Shoot rotates its key by default, so only a rotation that is turned off is wrong.
func shootKeyRotation(r *report, s shoot) {
	provider := s.spec.at("kubernetes", "kubeAPIServer", "encryptionConfig", "provider", "type")
	rotation := s.spec.at("maintenance", "autoRotation", "credentials", "etcdEncryptionKey")
	period, given := rotation.at("rotationPeriod").duration()
	if provider.text() == "aesgcm" && given && period == 0 {
		r.add(provider, TypeForbidden, "aesgcm needs a key that is rotated; spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod must not be 0")
	}
}

// shootHibernation checks the schedules of hibernation.
func shootHibernation(r *report, s shoot) {
	if controlPlanePool(s.workers).set() {
		return // shoot/self-hosted refuses it as a whole
	}
	if enabled := s.spec.at("hibernation", "enabled"); enabled.is() {
		for _, op := range readOperations(s.at("metadata", "annotations"), keyMaintenanceOperation).list {
			if slices.Contains(sleepless[:], op) {
				r.add(enabled, TypeForbidden, "the cluster cannot be hibernated, because the annotation %s asks for %q", keyMaintenanceOperation, op)
			}
		}
	}
	seen := map[string]string{}
	for _, schedule := range s.spec.at("hibernation", "schedules").items() {
		if !schedule.at("start").set() && !schedule.at("end").set() {
			r.add(schedule.at("start/end"), TypeRequired, "must have start or end, or both")
		}
		for _, name := range []string{"start", "end"} {
			field := schedule.at(name)
			if !field.set() {
				continue
			}
			first, double := seen[field.text()]
			switch problem := CronProblem(field.text()); {
			case problem != "":
				r.add(field, TypeInvalid, "%q %s", field.text(), problem)
			case double:
				r.add(field, TypeDuplicate, "the schedule %q is given already as %s", field.text(), first)
			default:
				seen[field.text()] = field.path
			}
		}
		if location := schedule.at("location"); location.set() {
			if _, err := time.LoadLocation(location.text()); err != nil {
				r.add(location, TypeInvalid, "%q is no time zone, such as Europe/Berlin", location.text())
			}
		}
	}
}
